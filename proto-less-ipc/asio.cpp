// All of Asio that need not be in headers, compiled once (BOOST_ASIO_SEPARATE_COMPILATION).
#pragma GCC diagnostic ignored "-Wconversion"
#pragma GCC diagnostic ignored "-Wold-style-cast"
#pragma GCC diagnostic ignored "-Wshadow"
#include <boost/asio/impl/src.hpp>
