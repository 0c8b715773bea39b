/* SPDX-License-Identifier: Apache-2.0 */
/* Threads read the same few records of a Berkeley DB tree in memory. Each read pins the pages on its way: it counts in
 * their headers. Built by bench/advice_sources.py with the library as it is and with the pin count on a line of its own. */
#include <db.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { threads = 2, records = 64 };

static DB* database;
static long reads;

static void check(int error, const char* what) {
  if (error != 0) {
    fprintf(stderr, "berkeley_db: %s: %s\n", what, db_strerror(error));
    exit(1);
  }
}

static DBT bytes_of(void* data, u_int32_t size) {
  DBT bytes;
  memset(&bytes, 0, sizeof bytes);
  bytes.data = data;
  bytes.size = bytes.ulen = size;
  bytes.flags = DB_DBT_USERMEM;
  return bytes;
}

static void* read_records(void* thread) {
  unsigned at = (unsigned)(size_t)thread;
  for (long i = 0; i < reads; ++i) {
    unsigned number = at = (at * 1103515245U + 12345U) % records;
    char found[32];
    DBT key = bytes_of(&number, sizeof number);
    DBT value = bytes_of(found, sizeof found);
    check(database->get(database, NULL, &key, &value, 0), "get");
  }
  return NULL;
}

int main(int count, char** arguments) {
  reads = 300L * (count > 1 ? atol(arguments[1]) : 1000);
  DB_ENV* environment;
  check(db_env_create(&environment, 0), "environment");
  check(environment->open(environment, NULL, DB_CREATE | DB_INIT_MPOOL | DB_PRIVATE | DB_THREAD, 0), "open environment");
  check(db_create(&database, environment, 0), "database");
  check(database->open(database, NULL, NULL, "records", DB_BTREE, DB_CREATE | DB_THREAD, 0), "open database");
  for (unsigned number = 0; number < records; ++number) {
    char text[32] = "record";
    DBT key = bytes_of(&number, sizeof number);
    DBT value = bytes_of(text, sizeof text);
    check(database->put(database, NULL, &key, &value, 0), "put");
  }
  pthread_t all[threads];
  for (size_t i = 0; i < threads; ++i) {
    pthread_create(&all[i], NULL, read_records, (void*)i);
  }
  for (size_t i = 0; i < threads; ++i) {
    pthread_join(all[i], NULL);
  }
  return 0;
}
