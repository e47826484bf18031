package main

import (
	"crypto/sha256"
	"flag"
	"fmt"
	"os"
	"runtime/metrics"
	"sync/atomic"
	"time"
)

type node struct {
	next *node
	data [240]byte
}

var total atomic.Int64

func main() {
	rate := flag.Float64("rate", 200, "MiB/s; 0: as fast as it can")
	live := flag.Int("live", 100, "MiB")
	g := flag.Int("g", 2, "goroutines")
	work := flag.Int("work", 0, "sha256 per 64 objects")
	s := flag.Float64("s", 15, "")
	flag.Parse()
	begin := time.Now()
	for w := 0; w < *g; w++ {
		go func() {
			ring := make([]*node, *live<<20/256 / *g)
			k, buf := 0, make([]byte, 1024)
			done := 0
			x := uint32(1)
			for {
				for i := 0; i < 64; i++ {
					x = x*1664525 + 1013904223
					ring[int(x>>4)%len(ring)] = &node{next: ring[k]}
					ring[int(x>>4)%len(ring)].next = nil
				}
				for i := 0; i < *work; i++ {
					h := sha256.Sum256(buf)
					buf[0] = h[0]
				}
				done += 64 * 256
				total.Add(64 * 256)
				if *rate > 0 {
					due := *rate / float64(*g) * time.Since(begin).Seconds() * (1 << 20)
					if float64(done) > due {
						time.Sleep(time.Duration((float64(done) - due) / (*rate / float64(*g) * (1 << 20)) * 1e9))
						time.Sleep(500 * time.Microsecond)
					}
				}
			}
		}()
	}
	time.Sleep(time.Duration(*s * float64(time.Second)))
	sm := []metrics.Sample{{Name: "/cpu/classes/gc/total:cpu-seconds"}, {Name: "/cpu/classes/user:cpu-seconds"}, {Name: "/cpu/classes/idle:cpu-seconds"}, {Name: "/cpu/classes/total:cpu-seconds"}}
	metrics.Read(sm)
	fmt.Fprintf(os.Stdout, "END alloc %.0f MiB/s gc=%.2f user=%.2f idle=%.2f total=%.2f\n", float64(total.Load())/(1<<20)/time.Since(begin).Seconds(), sm[0].Value.Float64(), sm[1].Value.Float64(), sm[2].Value.Float64(), sm[3].Value.Float64())
}
