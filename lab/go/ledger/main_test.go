package main

import "testing"

func BenchmarkRecord(b *testing.B) {
	w := newWorker()
	for number := range b.N {
		w.do(uint64(number))
	}
}
