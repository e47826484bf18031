package main

import (
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
	"time"
)

// Close to the start of the runtime, from which gctrace counts.
var begin = time.Now()

// follow changes settings while the program runs, as PLAN says, and writes each change to the file
// TRUTH. A step is "CYCLES name=value …" or "SECONDSs name=value …": once so many cycles or seconds
// have passed; the names are gogc, limit (MiB), procs,
// collect (so many forced cycles) and what the program adds; "exit" ends it.
func follow(others func(name string, value float64)) {
	truth, _ := os.Create(os.Getenv("TRUTH"))
	var stats debug.GCStats
	for _, step := range strings.Split(os.Getenv("PLAN"), ",") {
		words := strings.Fields(step)
		if len(words) == 0 {
			continue
		}
		seconds := strings.HasSuffix(words[0], "s")
		when, _ := strconv.ParseFloat(strings.TrimSuffix(words[0], "s"), 64)
		for debug.ReadGCStats(&stats); when > 0; debug.ReadGCStats(&stats) {
			if seconds && time.Since(begin).Seconds() >= when || !seconds && float64(stats.NumGC) >= when {
				break
			}
			time.Sleep(200 * time.Microsecond)
		}
		for _, word := range words[1:] {
			if word == "exit" {
				os.Exit(0)
			}
			parts := strings.SplitN(word, "=", 2)
			value, err := strconv.ParseFloat(parts[1], 64)
			switch parts[0] {
			case "gogc":
				if err != nil {
					value = -1 // off
				}
				debug.SetGCPercent(int(value))
			case "limit":
				if err != nil {
					value = 1 << 40 // off
				}
				setLimit(int64(value * (1 << 20)))
			case "collect":
				for ; value > 0; value-- {
					time.Sleep(20 * time.Millisecond)
					runtime.GC()
				}
			case "procs":
				runtime.GOMAXPROCS(int(value))
			default:
				others(parts[0], value)
			}
		}
		fmt.Fprintf(truth, "%.3f %d %s\n", time.Since(begin).Seconds(), stats.NumGC, strings.Join(words[1:], " "))
	}
}
