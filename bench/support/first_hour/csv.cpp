// SPDX-License-Identifier: Apache-2.0
// Reads a CSV file, named by the first argument, once: prints seconds, processor seconds, peak megabytes, rows, and the sum of a
// column of numbers and the number of rows of a text, which the peer compares.
#include <sys/resource.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>

#include <skein/data/csv.hpp>

int main(int count, char** arguments) {
  using namespace skein::data;
  if (count < 3) return 2;
  const auto start = std::chrono::steady_clock::now();
  const Table table = read_csv(arguments[1], {.threads = std::atoi(arguments[2])});
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  const auto of = [](const timeval& t) { return static_cast<double>(t.tv_sec) + 1e-6 * static_cast<double>(t.tv_usec); };
  double sum = 0;
  for (const double price : table.numbers("price")) sum += price;
  long cologne = 0;
  for (std::int64_t r = 0; r < table.rows(); ++r) cologne += table.text(r, table.column("town")) == "Cologne";
  std::printf("%.6f %.6f %.1f %lld %.6f %ld\n", seconds, of(usage.ru_utime) + of(usage.ru_stime),
              static_cast<double>(usage.ru_maxrss) / 1024, static_cast<long long>(table.rows()), sum, cologne);
}
