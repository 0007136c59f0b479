/// One header field of a request or a response.
package struct HTTP2Field: Sendable, Equatable {
  /// Whether HPACK may keep the field in its table.
  package enum Indexing: Sendable {
    /// The encoder decides; right for a value that many requests of a connection share.
    case allowed
    /// Literal, never indexed (RFC 7541, section 6.2.3): secrets, and values that differ each time.
    case never
  }

  /// Lower case, as HTTP/2 demands (RFC 9113, section 8.2.1).
  package var name: String
  package var value: String
  package var indexing: Indexing

  package init(_ name: String, _ value: String, indexing: Indexing = .allowed) {
    self.name = name
    self.value = value
    self.indexing = indexing
  }
}

/// A run of bytes inside a buffer that the holder names.
package struct HTTP2ByteRange: Sendable, Equatable {
  /// In bytes from the start of the buffer.
  package var offset: UInt32
  /// In bytes.
  package var count: UInt32

  package init(offset: UInt32, count: UInt32) {
    self.offset = offset
    self.count = count
  }

  /// No bytes.
  package static let empty = HTTP2ByteRange(offset: 0, count: 0)

  package var isEmpty: Bool { count == 0 }

  /// As indices of the buffer.
  package var indices: Range<Int> { Int(offset)..<(Int(offset) + Int(count)) }
}
