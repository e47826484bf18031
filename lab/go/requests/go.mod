module requests

go 1.22
