// Keeps a live heap of a known size and shape under settings that it changes while it runs.
package main

import (
	"flag"
	"math/rand"
	"os"
	"sync/atomic"
	"time"
)

type node struct {
	next *node
	data []byte
}

var (
	live   = flag.Float64("live", 5, "live heap, MiB")
	shape  = flag.String("shape", "constant", "of the live heap: constant, swing (between half and all of it), grow (from a quarter)")
	every  = flag.Float64("every", 2, "seconds of a swing, or until it has grown")
	jump   = flag.Float64("jump", 0, "MiB allocated at once, twice a second")
	stacks = flag.Int("stacks", 0, "goroutines with a stack of 64 KiB")
	pause  = flag.Duration("pause", 500*time.Microsecond, "sleep after each 400 objects")
	sink   []byte
	wanted int64 // KiB
)

func deep(n int) byte {
	var pad [1 << 10]byte
	if n == 0 {
		select {}
	}
	pad[n] = deep(n - 1)
	return pad[n&7]
}

// share of the live heap that is wanted now
func share() float64 {
	at := time.Since(begin).Seconds() / *every
	switch *shape {
	case "swing":
		at -= float64(int(at/2)) * 2
		if at > 1 {
			at = 2 - at
		}
		return 0.5 + at/2
	case "grow":
		if at > 1 {
			at = 1
		}
		return 0.25 + 0.75*at
	}
	return 1
}

func main() {
	flag.Parse()
	atomic.StoreInt64(&wanted, int64(*live*1024))
	go func() {
		follow(func(name string, value float64) { atomic.StoreInt64(&wanted, int64(value*1024)) })
		os.Exit(0)
	}()
	for i := 0; i < *stacks; i++ {
		go deep(40)
	}
	var held []*node
	jumped := begin
	for {
		n := int(float64(atomic.LoadInt64(&wanted)) * share())
		for len(held) > n {
			held[len(held)-1] = nil
			held = held[:len(held)-1]
		}
		for i := 0; i < 4000 && len(held) < n; i++ {
			held = append(held, &node{data: make([]byte, 960)})
		}
		for i := 0; i < 400 && len(held) > 0; i++ {
			held[rand.Intn(len(held))] = &node{data: make([]byte, 960)}
			globals[i] = held[0]
			sink = make([]byte, 256+rand.Intn(1024))
		}
		if *jump > 0 && time.Since(jumped) > 500*time.Millisecond {
			jumped = time.Now()
			sink = make([]byte, int(*jump*(1<<20)))
		}
		time.Sleep(*pause)
	}
}
