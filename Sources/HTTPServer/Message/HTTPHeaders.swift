import Wire

#if canImport(Glibc)
  import Glibc
#elseif canImport(Musl)
  import Musl
#elseif canImport(Darwin)
  import Darwin
#endif

/// Header fields in the order received, with duplicates; names are compared regardless of letter
/// case.
///
/// All names and values are in one buffer, so a request's headers cost two allocations regardless
/// of their number; a `String` is created only for a requested value. Look-up is a linear scan,
/// which for the dozen fields of a typical request is faster than hashing.
package struct HTTPHeaders: Sendable {
  /// Offsets into `storage`: the name from `name` up to a NUL at `value - 1`, the value from
  /// `value` up to a NUL at `end`.
  struct Field: Sendable {
    var name: Int
    var value: Int
    var end: Int
  }

  /// Every name and value followed by a NUL, so that C can read them in place.
  private(set) var storage: [UInt8] = []
  private(set) var fields: [Field] = []

  package init() {}

  package var count: Int { fields.count }

  /// The first field of this name; setting replaces all fields of the name, `nil` removes them.
  package subscript(name: String) -> String? {
    get {
      for field in fields where matches(field, name) { return value(field) }
      return nil
    }
    set {
      fields = fields.filter { !matches($0, name) }
      if let newValue { add(name, newValue) }
    }
  }

  /// Every value of the fields of this name, in order.
  package func values(_ name: String) -> [String] {
    fields.filter { matches($0, name) }.map(value)
  }

  /// The first field of this name as received, without creating a `String`.
  package func bytes(_ name: String) -> ArraySlice<UInt8>? {
    for field in fields where matches(field, name) { return storage[field.value..<field.end] }
    return nil
  }

  package func contains(_ name: String) -> Bool { fields.contains { matches($0, name) } }

  /// Appends a field. Characters that would end the line or the text (CR, LF, NUL) become blanks,
  /// so that no value can inject a header.
  package mutating func add(_ name: String, _ value: String) {
    let start = storage.count
    append(name.utf8)
    let valueStart = storage.count
    append(value.utf8)
    fields.append(Field(name: start, value: valueStart, end: storage.count - 1))
  }

  /// Appends a field with a UUID.
  package mutating func add(_ name: String, uuid: (high: UInt64, low: UInt64)) {
    let start = storage.count
    append(name.utf8)
    let valueStart = storage.count
    UUIDText.append(high: uuid.high, low: uuid.low, to: &storage)
    storage.append(0)
    fields.append(Field(name: start, value: valueStart, end: storage.count - 1))
  }

  private mutating func append(_ text: String.UTF8View) {
    let start = storage.count
    storage.append(contentsOf: text)
    storage.append(0)
    storage.withUnsafeMutableBufferPointer { bytes in
      for index in start..<(bytes.count - 1) {
        let byte = bytes[index]
        if byte == 0 || byte == 10 || byte == 13 { bytes[index] = 32 }
      }
    }
  }

  /// Appends a field whose bytes were validated by a C library, without the blanks around the value
  /// (RFC 9110, section 5.5).
  mutating func add(name: UnsafeRawBufferPointer, value: UnsafeRawBufferPointer) {
    let start = storage.count
    storage.append(contentsOf: name)
    storage.append(0)
    let valueStart = storage.count
    var value = value[...]
    while let last = value.last, last == ASCII.blank || last == ASCII.tab { value.removeLast() }
    storage.append(contentsOf: value)
    storage.append(0)
    fields.append(Field(name: start, value: valueStart, end: storage.count - 1))
  }

  /// Appends a field whose bytes were already validated.
  mutating func add(name: StaticString, value: ArraySlice<UInt8>) {
    let name = UnsafeRawBufferPointer(start: name.utf8Start, count: name.utf8CodeUnitCount)
    value.withUnsafeBytes { add(name: name, value: $0) }
  }

  package mutating func reserve(fields count: Int, bytes: Int) {
    fields.reserveCapacity(count)
    storage.reserveCapacity(bytes)
  }

  private func matches(_ field: Field, _ name: String) -> Bool {
    // Before a slice is made for each field.
    guard field.value - 1 - field.name == name.utf8.count else { return false }
    return storage[field.name..<field.value - 1].isEqualIgnoringCase(name.utf8)
  }

  private func value(_ field: Field) -> String {
    String(decoding: storage[field.value..<field.end], as: UTF8.self)
  }
}

extension HTTPHeaders: ExpressibleByDictionaryLiteral {
  package init(dictionaryLiteral elements: (String, String)...) {
    for (name, value) in elements { add(name, value) }
  }
}

extension HTTPHeaders: Sequence {
  package func makeIterator() -> AnyIterator<(name: String, value: String)> {
    var index = 0
    return AnyIterator {
      guard index < fields.count else { return nil }
      defer { index += 1 }
      let field = fields[index]
      let name = String(decoding: storage[field.name..<(field.value - 1)], as: UTF8.self)
      return (name, value(field))
    }
  }
}

extension HTTPHeaders {
  /// Whether a request's head is unambiguous (RFC 9112, sections 3.2, 5.1 and 6.3).
  ///
  /// A proxy in front that reads an ambiguous head differently takes part of one client's request
  /// for the next client's ("request smuggling"), so doubtful heads are refused too: a length given
  /// twice, even with the same value, or together with `Transfer-Encoding`; any coding but a single
  /// `chunked`; no `Host`, or several; a name with a blank in it; a carriage return within a value.
  ///
  /// - Parameter isVersion10: Whether the request is HTTP/1.0, which needs no `Host` and has no
  ///   `Transfer-Encoding`.
  func isUnambiguousHead(isVersion10: Bool) -> Bool {
    var (hosts, lengths, codings) = (0, 0, 0)
    return storage.withUnsafeBufferPointer { bytes in
      guard let base = bytes.baseAddress else { return isVersion10 }
      if memchr(base, 13, bytes.count) != nil { return false }
      for field in fields {
        let name = UnsafeBufferPointer(rebasing: bytes[field.name..<(field.value - 1)])
        let value = UnsafeBufferPointer(rebasing: bytes[field.value..<field.end])
        guard !name.isEmpty, name.allSatisfy(\.isTokenByte) else { return false }
        switch name.count {
        case 4 where name.isEqualIgnoringCase("host".utf8):
          hosts += 1
        case 14 where name.isEqualIgnoringCase("content-length".utf8):
          lengths += 1
          guard !value.isEmpty, value.allSatisfy(\.isDigit) else { return false }
        case 17 where name.isEqualIgnoringCase("transfer-encoding".utf8):
          codings += 1
          guard value.isEqualIgnoringCase("chunked".utf8) else { return false }
        default: break
        }
      }
      let maxCodings = isVersion10 ? 0 : 1
      return lengths + codings <= 1 && codings <= maxCodings
        && (hosts == 1 || (hosts == 0 && isVersion10))
    }
  }
}
