// Keeps a ring of live memory, and changes GOGC or the memory limit while it runs.
package main

import (
	"flag"
	"math/rand"
	"runtime/debug"
	"strconv"
	"strings"
	"time"
)

type node struct {
	next *node
	data [240]byte
}

var sink [4]*node

// A plan is "seconds:gogc:limitMiB:liveMiB,…"; 0 leaves a setting as it is.
func main() {
	plan := flag.String("plan", "", "")
	swing := flag.Int("swing", 0, "percent")
	pace := flag.Int("pace", 100, "microseconds of sleep per 1024 objects")
	flag.Parse()
	steps := strings.Split(*plan, ",")
	ring := make([]*node, 1<<20)
	begin := time.Now()
	until := 0.0
	n := 0
	for i := 0; ; i++ {
		if i&1023 == 0 {
			now := time.Since(begin).Seconds()
			if now >= until {
				if len(steps) == 0 {
					return
				}
				parts := strings.Split(steps[0], ":")
				steps = steps[1:]
				v := make([]float64, 4)
				for k, p := range parts {
					v[k], _ = strconv.ParseFloat(p, 64)
				}
				until = now + v[0]
				if v[1] > 0 {
					debug.SetGCPercent(int(v[1]))
				}
				if v[2] > 0 {
					debug.SetMemoryLimit(int64(v[2]) << 20)
				}
				if v[3] > 0 {
					m := int(v[3]) << 20 / 256
					for k := m; k < len(ring); k++ {
						ring[k] = nil
					}
					for k := n; k < m; k++ {
						ring[k] = &node{}
					}
					n = m
				}
			}
			time.Sleep(time.Duration(*pace) * time.Microsecond)
		}
		m := n
		if *swing > 0 {
			ph := time.Since(begin).Seconds() / 1.3
			m = n - int(float64(n)*float64(*swing)/100*(ph-float64(int(ph))))
		}
		j := rand.Intn(n)
		if j < m {
			ring[j] = &node{}
		} else {
			ring[j] = nil
			sink[i&3] = &node{}
		}
	}
}
