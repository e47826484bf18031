//go:build go1.19
// +build go1.19

package main

import "runtime/debug"

func setLimit(bytes int64) { debug.SetMemoryLimit(bytes) }
