//go:build !go1.19
// +build !go1.19

package main

import (
	"runtime"
	"time"
)

// Reading MemStats stops the world, so do not read it too often.
const pollEvery = 200 * time.Millisecond

func mapped() uint64 {
	var ms runtime.MemStats
	runtime.ReadMemStats(&ms)
	return ms.Sys - ms.HeapReleased
}

func runtimeMetrics() map[string]interface{} { return map[string]interface{}{} }
