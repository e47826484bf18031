//go:build go1.19
// +build go1.19

package main

import (
	"runtime/debug"
	"runtime/metrics"
	"time"
)

const pollEvery = 10 * time.Millisecond

// mapped returns the memory that the runtime has obtained and not returned.
func mapped() uint64 {
	s := []metrics.Sample{{Name: "/memory/classes/total:bytes"}, {Name: "/memory/classes/heap/released:bytes"}}
	metrics.Read(s)
	return s[0].Value.Uint64() - s[1].Value.Uint64()
}

// runtimeMetrics returns the metrics of the runtime.
func runtimeMetrics() map[string]interface{} {
	names := []string{"/cpu/classes/gc/total:cpu-seconds", "/cpu/classes/gc/mark/assist:cpu-seconds", "/cpu/classes/gc/mark/dedicated:cpu-seconds",
		"/cpu/classes/gc/mark/idle:cpu-seconds", "/cpu/classes/gc/pause:cpu-seconds", "/cpu/classes/user:cpu-seconds", "/cpu/classes/total:cpu-seconds",
		"/cpu/classes/scavenge/total:cpu-seconds", "/gc/limiter/last-enabled:gc-cycle", "/gc/cycles/total:gc-cycles", "/gc/heap/allocs:bytes"}
	s := make([]metrics.Sample, len(names))
	for i, n := range names {
		s[i].Name = n
	}
	metrics.Read(s)
	m := map[string]interface{}{"gomemlimit_bytes": debug.SetMemoryLimit(-1)}
	for _, x := range s {
		switch x.Value.Kind() {
		case metrics.KindFloat64:
			m[x.Name] = x.Value.Float64()
		case metrics.KindUint64:
			m[x.Name] = x.Value.Uint64()
		}
	}
	return m
}
