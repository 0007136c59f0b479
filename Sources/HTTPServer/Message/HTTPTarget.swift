import Wire

/// The target of a request: path and query exactly as received, and their parts.
///
/// Nothing is decoded or normalized in advance: signatures are computed over the bytes as sent, and
/// `%2F` inside a segment is not a separator. An absolute-form target (RFC 9112, section 3.2.2)
/// loses its scheme and authority.
package struct HTTPTarget: Sendable, CustomStringConvertible, ExpressibleByStringLiteral {
  private let received: [UInt8]
  private let pathStart: Int
  private let pathEnd: Int
  /// The segments, which several readers of a request want; `nil` if there are many, since a
  /// request may hold them for long.
  private let segments: [HTTPPathSegment]?

  private static let fewSegments = 8

  package init(_ target: String) { self.init(bytes: Array(target.utf8)) }

  package init(stringLiteral target: String) { self.init(target) }

  package init(bytes: [UInt8]) {
    received = bytes
    pathStart = Self.pathStart(bytes)
    pathEnd = bytes[pathStart...].firstIndex(of: ASCII.questionMark) ?? bytes.count
    let path = bytes[pathStart..<pathEnd]
    segments =
      path.count { $0 == ASCII.slash } <= Self.fewSegments ? Self.segments(of: path) : nil
  }

  /// Path and query as received.
  package var bytes: ArraySlice<UInt8> { received[pathStart...] }

  /// Path and query as received, for messages and `Location` headers.
  package var description: String { String(decoding: bytes, as: UTF8.self) }

  /// The path as received, still encoded, with its leading slash.
  package var rawPath: ArraySlice<UInt8> { received[pathStart..<pathEnd] }

  /// The query as received, still encoded, without its question mark; `nil` if there is none.
  package var rawQuery: ArraySlice<UInt8>? {
    pathEnd < received.count ? received[(pathEnd + 1)...] : nil
  }

  /// The path's segments. A trailing slash adds no segment, so `/` and the empty path have none.
  package var pathSegments: [HTTPPathSegment] { segments ?? Self.segments(of: rawPath) }

  private static func segments(of path: ArraySlice<UInt8>) -> [HTTPPathSegment] {
    var path = path
    if path.first == ASCII.slash { path = path.dropFirst() }
    if path.last == ASCII.slash { path = path.dropLast() }
    guard !path.isEmpty else { return [] }
    var segments: [HTTPPathSegment] = []
    segments.reserveCapacity(fewSegments)
    while let end = path.firstIndex(of: ASCII.slash) {
      segments.append(HTTPPathSegment(raw: path[..<end]))
      path = path[(end + 1)...]
    }
    segments.append(HTTPPathSegment(raw: path))
    return segments
  }

  /// Whether a segment is `.` or `..`, literally or decoded once or twice, also where `\` or an
  /// encoded slash separates or a `;` ends it: another URL layer would change the path.
  package var hasDotSegment: Bool {
    guard rawPath.contains(ASCII.dot) || rawPath.contains(ASCII.percent) else { return false }
    return pathSegments.contains { segment in
      var bytes = Array(segment.raw)
      for _ in 0...2 {
        let parts = bytes.split { $0 == ASCII.slash || $0 == ASCII.backslash }
        let hasDots = parts.contains { part in
          let name = part.prefix { $0 != ASCII.semicolon }
          return (1...2).contains(name.count) && name.allSatisfy { $0 == ASCII.dot }
        }
        if hasDots { return true }
        guard bytes.contains(ASCII.percent), let decoded = PercentEncoding.decode(bytes) else {
          return false
        }
        bytes = Array(decoded.utf8)
      }
      return false
    }
  }

  /// Whether the path has a segment and ends in a slash.
  package var hasTrailingSlash: Bool { rawPath.count > 1 && rawPath.last == ASCII.slash }

  /// The query's items in order; empty items (`&&`) are omitted.
  package var queryItems: [HTTPQueryItem] {
    guard let rawQuery else { return [] }
    return rawQuery.split(separator: ASCII.ampersand).map(HTTPQueryItem.init)
  }

  /// The first query item with this (decoded) name, regardless of letter case. Each request asks for
  /// some, so no array of all is made.
  package func queryItem(_ name: String) -> HTTPQueryItem? {
    guard var rest = rawQuery else { return nil }
    while !rest.isEmpty {
      let end = rest.firstIndex(of: ASCII.ampersand) ?? rest.endIndex
      let item = HTTPQueryItem(raw: rest[..<end])
      if end > rest.startIndex, item.isNamed(name) { return item }
      rest = rest[min(end + 1, rest.endIndex)...]
    }
    return nil
  }

  private static func pathStart(_ bytes: [UInt8]) -> Int {
    guard let first = bytes.first, first != ASCII.slash,
      let scheme = ["http://", "https://"].first(where: {
        bytes.prefix($0.utf8.count).isEqualIgnoringCase($0.utf8)
      })
    else { return 0 }
    let authority = bytes[scheme.utf8.count...]
    return authority.firstIndex { $0 == ASCII.slash || $0 == ASCII.questionMark } ?? bytes.count
  }
}

/// One segment of a path, as received.
package struct HTTPPathSegment: Sendable {
  /// The bytes between two slashes, still encoded.
  package let raw: ArraySlice<UInt8>

  package init(raw: ArraySlice<UInt8>) { self.raw = raw }

  /// The segment decoded once; `nil` if its encoding is invalid or it is not UTF-8.
  package var decoded: String? { PercentEncoding.decode(raw) }
}

/// A `name=value` pair of a query, as received.
package struct HTTPQueryItem: Sendable {
  /// The bytes before the first `=`, still encoded.
  package let rawName: ArraySlice<UInt8>
  /// The bytes after the first `=`, still encoded; `nil` for a flag such as `direct`, which has
  /// no `=`.
  package let rawValue: ArraySlice<UInt8>?

  package init(raw: ArraySlice<UInt8>) {
    if let equals = raw.firstIndex(of: ASCII.equals) {
      rawName = raw[..<equals]
      rawValue = raw[(equals + 1)...]
    } else {
      rawName = raw
      rawValue = nil
    }
  }

  /// The name decoded once; `nil` if its encoding is invalid.
  package var name: String? { PercentEncoding.decode(rawName) }

  /// The value decoded once, with `+` read as a blank; `nil` if there is none or its encoding is
  /// invalid.
  package var value: String? {
    rawValue.flatMap { PercentEncoding.decode($0, plusIsBlank: true) }
  }

  /// Whether the item has this (decoded) name, regardless of letter case.
  package func isNamed(_ name: String) -> Bool {
    if rawName.contains(ASCII.percent) {
      return self.name.map { $0.utf8.isEqualIgnoringCase(name.utf8) } ?? false
    }
    return rawName.isEqualIgnoringCase(name.utf8)
  }
}
