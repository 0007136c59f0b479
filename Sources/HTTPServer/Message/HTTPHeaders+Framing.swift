#if canImport(Glibc)
  import Glibc
#elseif canImport(Musl)
  import Musl
#elseif canImport(Darwin)
  import Darwin
#endif

extension HTTPHeaders {
  /// Whether a request's head can be read in one way only (RFC 9112, sections 3.2, 5.1 and 6.3).
  ///
  /// A proxy in front that reads an ambiguous head in the other way takes a part of one client's
  /// request for the next client's ("request smuggling"), so what is merely doubtful is refused too:
  /// a length given twice, even the same one, or beside `Transfer-Encoding`; any coding but a single
  /// `chunked`; no `Host`, or several; a name with a blank in it; a carriage return within a value.
  ///
  /// - Parameter isVersion10: HTTP/1.0 needs no `Host` and knows no `Transfer-Encoding`.
  func isUnambiguousHead(isVersion10: Bool) -> Bool {
    var (hosts, lengths, codings) = (0, 0, 0)
    return storage.withUnsafeBufferPointer { bytes in
      guard let base = bytes.baseAddress else { return isVersion10 }
      if memchr(base, 13, bytes.count) != nil { return false }
      for field in fields {
        let name = UnsafeBufferPointer(rebasing: bytes[field.name..<(field.value - 1)])
        let value = UnsafeBufferPointer(rebasing: bytes[field.value..<field.end])
        guard !name.isEmpty, name.allSatisfy(ASCII.isToken) else { return false }
        switch name.count {
        case 4 where ASCII.equalIgnoringCase(name, "host".utf8):
          hosts += 1
        case 14 where ASCII.equalIgnoringCase(name, "content-length".utf8):
          lengths += 1
          guard !value.isEmpty, value.allSatisfy(ASCII.isDigit) else { return false }
        case 17 where ASCII.equalIgnoringCase(name, "transfer-encoding".utf8):
          codings += 1
          guard ASCII.equalIgnoringCase(value, "chunked".utf8) else { return false }
        default: break
        }
      }
      let maxCodings = isVersion10 ? 0 : 1
      return lengths + codings <= 1 && codings <= maxCodings
        && (hosts == 1 || (hosts == 0 && isVersion10))
    }
  }
}
