import CCurl

/// Owns one of libcurl's easy handles.
final class EasyHandle {
  let pointer: UnsafeMutableRawPointer

  init?() {
    guard let pointer = curl_easy_init() else { return nil }
    self.pointer = pointer
  }

  deinit { curl_easy_cleanup(pointer) }

  func set(_ option: CURLoption, _ value: Int) {
    _ = belfry_curl_set_long(pointer, option, value)
  }

  func set(_ option: CURLoption, _ value: String) -> Bool {
    belfry_curl_set_string(pointer, option, value) == CURLE_OK
  }
}
