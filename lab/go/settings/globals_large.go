//go:build globals
// +build globals

package main

var globals [2 << 20]*node // 16 MiB
