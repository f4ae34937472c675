# SPDX-License-Identifier: Apache-2.0
# SKEIN_DATA_DIR, the folder of data sets that tests and examples get as SKEIN_DATA: what -DSKEIN_DATA_DIR says, which the cache keeps; else the
# environment's SKEIN_DATA, which each configuring reads again; else ../shared/data where that is.

set(SKEIN_DATA_DIR "" CACHE PATH "Data sets that tests and examples read; empty: those of the environment's SKEIN_DATA; synthetic data where there are none")
if(NOT SKEIN_DATA_DIR AND NOT "$ENV{SKEIN_DATA}" STREQUAL "")
  set(SKEIN_DATA_DIR "$ENV{SKEIN_DATA}")
elseif(NOT SKEIN_DATA_DIR AND IS_DIRECTORY "${PROJECT_SOURCE_DIR}/../shared/data")
  get_filename_component(SKEIN_DATA_DIR "${PROJECT_SOURCE_DIR}/../shared/data" ABSOLUTE)
endif()
