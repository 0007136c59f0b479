#include <stddef.h>
#include <stdint.h>
#include <zlib.h>

/* `deflateInit2` is a macro, which does not reach Swift.
   Writes `count` bytes as gzip (RFC 1952), as small as zlib can; 0 when they do not fit into `room`. */
static inline size_t belfry_gzip(const uint8_t *bytes, size_t count, uint8_t *out, size_t room) {
  z_stream stream = {0};
  /* 15: the largest window. 16 more: the frame of gzip in place of zlib's own. */
  if (deflateInit2(&stream, 9, Z_DEFLATED, 15 + 16, 9, Z_DEFAULT_STRATEGY) != Z_OK) return 0;
  stream.next_in = (Bytef *)bytes;
  stream.avail_in = (uInt)count;
  stream.next_out = out;
  stream.avail_out = (uInt)room;
  int end = deflate(&stream, Z_FINISH);
  size_t written = room - stream.avail_out;
  deflateEnd(&stream);
  return end == Z_STREAM_END ? written : 0;
}
