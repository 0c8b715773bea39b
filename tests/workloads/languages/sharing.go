// SPDX-License-Identifier: Apache-2.0
// Two goroutines add to neighbouring words of one line: known false sharing, on the lines marked "shared". Argument: seconds.
package main

import (
	"fmt"
	"os"
	"strconv"
	"sync"
	"sync/atomic"
	"time"
)

var hits struct {
	left, right int64
	_           [6]int64
}
var over int32

func count(word *int64, done *sync.WaitGroup) {
	for atomic.LoadInt32(&over) == 0 {
		for i := 0; i < 1000; i++ {
			atomic.AddInt64(word, 1) // shared
		}
	}
	done.Done()
}

func main() {
	seconds := 5
	if len(os.Args) > 1 {
		seconds, _ = strconv.Atoi(os.Args[1])
	}
	var done sync.WaitGroup
	done.Add(2)
	go count(&hits.left, &done)
	go count(&hits.right, &done)
	time.Sleep(time.Duration(seconds) * time.Second)
	atomic.StoreInt32(&over, 1)
	done.Wait()
	fmt.Println(hits.left > 0 && hits.right > 0)
}
