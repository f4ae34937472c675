// SPDX-License-Identifier: Apache-2.0
#include <skein/core/one_thread.hpp>

#include <string>
#include <thread>

#include <catch2/catch.hpp>

namespace sk = skein;

TEST_CASE("a second thread is refused while the first is in a call; calls within calls are allowed", "[core]") {
  sk::OneThread object;
  const auto from_another_thread = [&] {
    std::string said;
    std::thread([&] {
      try {
        const sk::OneThread::Call call(object, "predict", "give it one of its own");
      } catch (const sk::ArgumentError& e) { said = e.what(); }
    }).join();
    return said;
  };
  {
    const sk::OneThread::Call outer(object, "fit", "");
    { const sk::OneThread::Call inner(object, "predict", ""); }
    CHECK(from_another_thread() ==
          "predict: another thread is within a call of this object, whose calls share memory: give it one of its own");
    sk::OneThread copy(object);  // nobody is within that one
    std::thread([&] { const sk::OneThread::Call call(copy, "fit", ""); }).join();
  }
  CHECK(from_another_thread().empty());
}

TEST_CASE("an object that was moved from takes no call until another is assigned to it", "[core]") {
  const auto said = [](sk::OneThread& object) -> std::string {
    try {
      const sk::OneThread::Call call(object, "fit", "");
    } catch (const sk::ArgumentError& e) { return e.what(); }
    return "";
  };
  sk::OneThread first;
  sk::OneThread second(std::move(first));
  CHECK(said(first) == "this object was moved from, and has nothing: use the one that it was moved to");
  CHECK(said(second).empty());
  sk::OneThread third(std::move(first));  // which has nothing
  CHECK_FALSE(said(third).empty());
  first = std::move(second);
  CHECK(said(first).empty());
  CHECK_FALSE(said(second).empty());
}
