# SPDX-License-Identifier: Apache-2.0
"""pandas reads the CSV file that is named by the argument: prints the same line as bench/support/first_hour/csv.cpp."""
import resource
import sys
import time

import pandas

start, before = time.perf_counter(), time.process_time()
table = pandas.read_csv(sys.argv[1])
seconds, processor = time.perf_counter() - start, time.process_time() - before
print(seconds, processor, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024, len(table), table["price"].sum(),
      (table["town"] == "Cologne").sum())
