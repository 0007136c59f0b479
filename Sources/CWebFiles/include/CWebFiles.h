#include <stdint.h>

#pragma clang assume_nonnull begin

/// A text file of a web page.
struct belfry_web_file {
  /// Below the page's folder, with slashes; null behind the last file of a list.
  const char *_Nullable name;
  /// Ends in a zero byte.
  const uint8_t *_Nullable text;
};

/// The files of Sources/HubServer/Portal/Files.
const struct belfry_web_file *belfry_portal_files(void);

#pragma clang assume_nonnull end
