// SPDX-License-Identifier: Apache-2.0
// Two threads add to neighbouring fields of one object: known false sharing, on the lines marked "shared". Argument: seconds.
public class Sharing {
    // Objects begin anywhere in a line: one of left's fields is in that of right's, wherever the next line begins.
    volatile long left, right, alsoLeft;
    volatile boolean over;

    void countLeft() {
        while (!over) {
            left++; // shared
            alsoLeft++; // shared
        }
    }

    void countRight() {
        while (!over) {
            right++; // shared
        }
    }

    public static void main(String[] arguments) throws InterruptedException {
        Sharing hits = new Sharing();
        Thread[] threads = {new Thread(hits::countLeft), new Thread(hits::countRight)};
        for (Thread thread : threads) {
            thread.start();
        }
        Thread.sleep(1000L * (arguments.length > 0 ? Integer.parseInt(arguments[0]) : 5));
        hits.over = true;
        for (Thread thread : threads) {
            thread.join();
        }
        System.out.println(hits.left > 0 && hits.right > 0);
    }
}
