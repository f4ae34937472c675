// SPDX-License-Identifier: Apache-2.0
#include <skein/draw/svg.hpp>

#include <filesystem>

#include <support/temporary_folder.hpp>
#include <support/xml_fault.hpp>

#include <catch2/catch.hpp>

using namespace skein::draw;
using support::xml_fault;

TEST_CASE("the checker of XML finds faults", "[draw]") {
  CHECK(xml_fault("<a><b x=\"1\"/>t &amp; u</a>\n").empty());
  for (const char* wrong : {"<a><b></a>", "<a>&</a>", "<a>", "<a></a></a>", "<a>1 > 2</a>", "<a x=\"<\"/>", "t<a/>"})
    CHECK(!xml_fault(wrong).empty());
}

TEST_CASE("a picture is its elements in order, on a white ground, its words escaped", "[draw]") {
  Svg svg(100, 50);
  svg.line(0, 1.25, 2.004, 3, {.color = "red", .width = 0.5, .dashed = true});
  svg.rect(1, 2, 3, 4, "blue", 0.5, {"white", 2});
  svg.circle(5, -0.001, 1, grey);
  const Point points[] = {{0, 0}, {1, 2.5}};
  svg.polyline(points, {});
  svg.words(7, 8, "a < \"b\" & c\x01", {.anchor = "end", .bold = true, .upwards = true});
  svg.words(7, 8, "");
  CHECK(
      svg.text() ==
      "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 100 50\" width=\"100\" height=\"50\" "
      "font-family=\"Helvetica, Arial, sans-serif\" font-size=\"12\">\n"
      "<rect width=\"100\" height=\"50\" fill=\"#fff\"/>\n"
      "<line x1=\"0\" y1=\"1.25\" x2=\"2\" y2=\"3\" stroke=\"red\" stroke-width=\"0.5\" stroke-dasharray=\"6 4\"/>\n"
      "<rect x=\"1\" y=\"2\" width=\"3\" height=\"4\" fill=\"blue\" fill-opacity=\"0.5\" stroke=\"white\" stroke-width=\"2\"/>\n"
      "<circle cx=\"5\" cy=\"0\" r=\"1\" fill=\"#555\"/>\n"
      "<polyline fill=\"none\" stroke-linejoin=\"round\" points=\"0,0 1,2.5\" stroke=\"#888\" stroke-width=\"1\"/>\n"
      "<text x=\"7\" y=\"8\" fill=\"#222\" text-anchor=\"end\" font-weight=\"600\" transform=\"rotate(-90 7 8)\">"
      "a &lt; &quot;b&quot; &amp; c </text>\n"
      "</svg>\n");
  CHECK(xml_fault(svg.text()).empty());
}

TEST_CASE("numbers of pictures are short", "[draw]") {
  CHECK(decimal(1.005, 1) == "1");
  CHECK(decimal(-0.001) == "0");
  CHECK(decimal(1200) == "1200");
  CHECK(decimal(0.125) == "0.12");
  CHECK(significant(0.0251345, 4) == "0.02513");
  CHECK(significant(1e-7) == "1e-07");
}

TEST_CASE("bytes that are no UTF-8 do not get into a picture", "[draw]") {
  std::string text;
  append_xml(text,
             "gr\xc3\xb6\xc3\x9f"
             "e, caf\xe9");
  CHECK(text ==
        "gr\xc3\xb6\xc3\x9f"
        "e, caf\xEF\xBF\xBD");
  text.clear();
  append_xml(text, "a\xEF\xBF\xBE\xEF\xBF\xBF\xEF\xBF\xBC");  // two that XML has not, and one that it has
  CHECK(text == "a\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBC");
}

TEST_CASE("a picture that cannot be written says where and why, and leaves the old one", "[draw]") {
  CHECK_THROWS_WITH(write_svg("/nowhere/a.svg", "<svg/>"),
                    "/nowhere/a.svg.partial: cannot be created: No such file or directory");
  const support::TemporaryFolder folder;
  write_svg(folder / "a.svg", "<svg/>");
  write_svg(folder / "other.svg", "<svg>other</svg>");
  std::filesystem::create_symlink(folder / "other.svg", folder / "a.svg.partial");
  CHECK_THROWS_WITH(write_svg(folder / "a.svg", "<svg></svg>"),
                    (folder / "a.svg.partial") + ": cannot be created: Too many levels of symbolic links");
  CHECK(support::read_text(folder / "a.svg") == "<svg/>");
  CHECK(support::read_text(folder / "other.svg") == "<svg>other</svg>");
}
