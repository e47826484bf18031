module leaks

go 1.22
