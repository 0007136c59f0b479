/// Header fields in the order of the wire, duplicates included, in one buffer.
package struct HTTP2FieldList: Sendable {
  struct Entry {
    var offset: UInt32
    var nameCount: UInt32
    var valueCount: UInt32
  }

  var bytes: [UInt8] = []
  var entries: [Entry] = []

  package init() {}

  package init(_ fields: [(name: String, value: String)]) {
    for field in fields { append(field.name, field.value) }
  }

  package var count: Int { entries.count }

  /// Names must be lower case.
  package mutating func append(_ name: String, _ value: String) {
    append(name: name.utf8, value: value.utf8)
  }

  /// Names must be lower case.
  package mutating func append(
    name: some Collection<UInt8>, value: some Collection<UInt8>
  ) {
    let start = bytes.count
    bytes.append(contentsOf: name)
    let nameEnd = bytes.count
    bytes.append(contentsOf: value)
    entries.append(
      Entry(
        offset: UInt32(start), nameCount: UInt32(nameEnd - start),
        valueCount: UInt32(bytes.count - nameEnd)))
  }

  mutating func removeAll() {
    bytes.removeAll(keepingCapacity: true)
    entries.removeAll(keepingCapacity: true)
  }

  /// The name bytes of a field.
  package func name(at index: Int) -> ArraySlice<UInt8> {
    let entry = entries[index]
    return bytes[Int(entry.offset)..<Int(entry.offset + entry.nameCount)]
  }

  /// The value bytes of a field.
  package func value(at index: Int) -> ArraySlice<UInt8> {
    let entry = entries[index]
    let start = Int(entry.offset + entry.nameCount)
    return bytes[start..<(start + Int(entry.valueCount))]
  }

  /// Indices of the fields with this lower-case name.
  package func indices(of name: String) -> [Int] {
    entries.indices.filter { self.name(at: $0).elementsEqual(name.utf8) }
  }

  /// The value bytes of the first field with this lower-case name.
  package func firstBytes(_ name: String) -> ArraySlice<UInt8>? {
    for index in entries.indices
    where Int(entries[index].nameCount) == name.utf8.count
      && self.name(at: index).elementsEqual(name.utf8)
    {
      return value(at: index)
    }
    return nil
  }

  /// The value of the first field with this lower-case name; bad UTF-8 is replaced.
  package func first(_ name: String) -> String? {
    firstBytes(name).map { String(decoding: $0, as: UTF8.self) }
  }

  /// All fields as text, in order.
  package var pairs: [(name: String, value: String)] {
    entries.indices.map {
      (
        String(decoding: name(at: $0), as: UTF8.self),
        String(decoding: value(at: $0), as: UTF8.self)
      )
    }
  }
}

/// One header field of a request or a response.
package struct HTTP2Field: Sendable, Equatable {
  /// Whether HPACK may keep the field in its table.
  package enum Indexing: Sendable {
    /// The encoder decides; suitable for a value that many requests of a connection share.
    case allowed
    /// Literal, never indexed (RFC 7541, section 6.2.3): for secrets, and values that differ each
    /// time.
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

/// A range of bytes in a buffer of the holder.
package struct HTTP2ByteRange: Sendable, Equatable {
  /// In bytes from the start of the buffer.
  package var offset: UInt32
  /// In bytes.
  package var count: UInt32

  /// An empty range.
  package static let empty = HTTP2ByteRange(offset: 0, count: 0)

  package var isEmpty: Bool { count == 0 }

  /// As indices of the buffer.
  package var indices: Range<Int> { Int(offset)..<(Int(offset) + Int(count)) }
}
