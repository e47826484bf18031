//go:build !globals
// +build !globals

package main

var globals [1 << 10]*node
