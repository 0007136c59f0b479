/// Parses a `multipart/mixed` or `multipart/form-data` body (RFC 2046, section 5.1), with line ends
/// of either kind.
package struct MultipartBody {
  /// One part, its header fields by folded name.
  package struct Part {
    package var headers: [String: String]
    package var body: ArraySlice<UInt8>
  }

  /// A limit above the number of parts of any request of the protocol.
  private static let maximumParts = 16
  private static let maximumHeaderBytes = 4096

  private let bytes: [UInt8]
  private let delimiter: [UInt8]
  private var position = 0

  package enum Fault: Error {
    case malformed
    /// The closing boundary is missing: the body may be truncated.
    case unclosed
  }

  /// The parts in their order.
  package static func parts(
    _ body: some Collection<UInt8>, boundary: String
  ) -> Result<[Part], Fault> {
    var reader = MultipartBody(bytes: Array(body), delimiter: Array("--\(boundary)".utf8))
    return Result { () throws(Fault) in try reader.parts() }
  }

  private init(bytes: [UInt8], delimiter: [UInt8]) {
    self.bytes = bytes
    self.delimiter = delimiter
  }

  /// The boundary of a content type: quoted or bare, blanks around the equals sign allowed.
  package static func boundary(_ contentType: String) -> String? {
    guard contentType.utf8.count <= 1024,
      contentType.trimmingBlanks.lowercased().hasPrefix("multipart/")
    else { return nil }
    for parameter in parameters(contentType) where parameter.name == "boundary" {
      return (1...200).contains(parameter.value.utf8.count) ? parameter.value : nil
    }
    return nil
  }

  /// The parameters of a header value such as `inline; name="devices"`, names folded.
  package static func parameters(_ value: String) -> [(name: String, value: String)] {
    value.split(separator: ";").dropFirst().compactMap { item in
      guard let equals = item.firstIndex(of: "=") else { return nil }
      let name = item[..<equals].trimmingBlanks.lowercased()
      var text = Substring(item[item.index(after: equals)...].trimmingBlanks)
      if text.count >= 2, let quote = text.first, quote == "\"" || quote == "'",
        text.last == quote
      {
        text = text.dropFirst().dropLast()
      }
      return (name, String(text))
    }
  }

  private mutating func parts() throws(Fault) -> [Part] {
    guard var (_, isLast) = nextDelimiter() else { throw .malformed }
    var parts: [Part] = []
    while !isLast {
      guard parts.count < Self.maximumParts else { throw .malformed }
      let start = position
      guard let (end, last) = nextDelimiter() else { throw .unclosed }
      guard let part = Self.part(bytes[start..<max(start, end)]) else { throw .malformed }
      parts.append(part)
      isLast = last
    }
    return parts
  }

  /// Advances past the next line that is a delimiter.
  /// - Returns: The end of the text before it, without its line end, and whether it is the last
  ///   delimiter.
  private mutating func nextDelimiter() -> (end: Int, isLast: Bool)? {
    var line = position
    while line < bytes.count {
      let lineEnd = bytes[line...].firstIndex(of: 0x0A) ?? bytes.count
      let next = min(lineEnd + 1, bytes.count)
      var content = bytes[line..<lineEnd]
      while let last = content.last, last == 0x0D || last == 0x20 || last == 0x09 {
        content.removeLast()
      }
      if content.starts(with: delimiter) {
        let tail = content.dropFirst(delimiter.count)
        let isLast = tail.elementsEqual("--".utf8)
        if isLast || tail.isEmpty {
          let end = Self.withoutLineEnd(bytes, from: position, to: line)
          position = next
          return (end, isLast)
        }
      }
      line = next
    }
    return nil
  }

  private static func withoutLineEnd(_ bytes: [UInt8], from start: Int, to end: Int) -> Int {
    var end = end
    if end > start, bytes[end - 1] == 0x0A { end -= 1 }
    if end > start, bytes[end - 1] == 0x0D { end -= 1 }
    return end
  }

  /// Parses header lines up to a blank one, then the body.
  private static func part(_ bytes: ArraySlice<UInt8>) -> Part? {
    var headers: [String: String] = [:]
    var line = bytes.startIndex
    while line < bytes.endIndex {
      guard line - bytes.startIndex <= maximumHeaderBytes else { return nil }
      let lineEnd = bytes[line...].firstIndex(of: 0x0A) ?? bytes.endIndex
      let text = String(decoding: bytes[line..<lineEnd], as: UTF8.self).trimmingBlanks
      line = min(lineEnd + 1, bytes.endIndex)
      if text.isEmpty { return Part(headers: headers, body: bytes[line...]) }
      guard let colon = text.firstIndex(of: ":") else { return nil }
      headers[text[..<colon].trimmingBlanks.lowercased()] =
        text[text.index(after: colon)...].trimmingBlanks
    }
    return nil
  }
}
