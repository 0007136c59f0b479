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
