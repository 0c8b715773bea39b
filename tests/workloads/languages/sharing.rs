// SPDX-License-Identifier: Apache-2.0
// Two threads add to neighbouring words of one line: known false sharing, on the lines marked "shared". Argument: seconds.
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::{env, thread, time};

#[repr(align(64))]
struct Hits {
    left: AtomicU64,
    right: AtomicU64,
}

static HITS: Hits = Hits { left: AtomicU64::new(0), right: AtomicU64::new(0) };
static OVER: AtomicBool = AtomicBool::new(false);

fn count(word: &AtomicU64) {
    while !OVER.load(Ordering::Relaxed) {
        for _ in 0..1000 {
            word.fetch_add(1, Ordering::Relaxed); // shared
        }
    }
}

fn main() {
    let seconds = env::args().nth(1).map_or(5, |text| text.parse().unwrap());
    let threads = [thread::spawn(|| count(&HITS.left)), thread::spawn(|| count(&HITS.right))];
    thread::sleep(time::Duration::from_secs(seconds));
    OVER.store(true, Ordering::Relaxed);
    for thread in threads {
        thread.join().unwrap();
    }
    println!("{}", HITS.left.load(Ordering::Relaxed) > 0 && HITS.right.load(Ordering::Relaxed) > 0);
}
