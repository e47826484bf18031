//go:build !go1.19
// +build !go1.19

package main

func setLimit(bytes int64) {} // no memory limit before Go 1.19
