/// Arrays in PostgreSQL's binary form, with one dimension each: a whole batch of rows is sent as
/// one array for each column, and `unnest` turns them into rows again. The results are bound as
/// bytes.
/// - SeeAlso: <https://www.postgresql.org/docs/current/functions-array.html>
package enum PostgresArray {
  // Other modules call these unspecialized: they only make an array of their argument, which is
  // free for one, so that the loops over it are specialized.

  package static func int8(_ values: some Collection<Int64?>) -> [UInt8] { int8(of: Array(values)) }

  package static func int8(_ values: some Collection<Int64>) -> [UInt8] {
    int8(of: Array(values).map(Optional.init))
  }

  /// Values beyond 16 bits are clamped.
  package static func int2(_ values: some Collection<Int64?>) -> [UInt8] { int2(of: Array(values)) }

  package static func int2(_ values: some Collection<Int64>) -> [UInt8] {
    int2(of: Array(values).map(Optional.init))
  }

  package static func float8(_ values: some Collection<Double?>) -> [UInt8] {
    array(of: 701, Array(values)) { value, bytes in append(value.bitPattern, to: &bytes) }
  }

  package static func text(_ values: some Collection<String?>) -> [UInt8] {
    text(of: Array(values))
  }

  package static func text(_ values: some Collection<String>) -> [UInt8] {
    text(of: Array(values).map(Optional.init))
  }

  package static func bytes(_ values: some Collection<[UInt8]?>) -> [UInt8] {
    array(of: 17, Array(values)) { value, bytes in bytes.append(contentsOf: value) }
  }

  private static func int8(of values: [Int64?]) -> [UInt8] {
    array(of: 20, values) { value, bytes in append(value, to: &bytes) }
  }

  private static func int2(of values: [Int64?]) -> [UInt8] {
    array(of: 21, values) { value, bytes in append(Int16(clamping: value), to: &bytes) }
  }

  private static func text(of values: [String?]) -> [UInt8] {
    array(of: 25, values) { value, bytes in bytes.append(contentsOf: value.utf8) }
  }

  /// Encodes texts as one text, to be cast to `text[]`: arrays of arrays would need equal lengths.
  package static func literal(_ texts: some Collection<String>) -> String {
    var literal = [UInt8(ascii: "{")]
    for text in Array(texts) {
      if literal.count > 1 { literal.append(UInt8(ascii: ",")) }
      literal.append(UInt8(ascii: "\""))
      for byte in text.utf8 {
        if byte == UInt8(ascii: "\"") || byte == UInt8(ascii: "\\") {
          literal.append(UInt8(ascii: "\\"))
        }
        literal.append(byte)
      }
      literal.append(UInt8(ascii: "\""))
    }
    literal.append(UInt8(ascii: "}"))
    return String(decoding: literal, as: UTF8.self)
  }

  /// The texts of a column of type `text[]`; nulls are omitted.
  /// - Returns: `nil` when the bytes are not such an array.
  package static func texts(in bytes: UnsafeRawBufferPointer) -> [String]? {
    var position = 0
    func number() -> Int? {
      guard position + 4 <= bytes.count else { return nil }
      defer { position += 4 }
      return Int(Int32(bigEndian: bytes.loadUnaligned(fromByteOffset: position, as: Int32.self)))
    }
    guard let dimensions = number(), number() != nil, number() == 25 else { return nil }
    if dimensions == 0 { return [] }
    guard dimensions == 1, let count = number(), number() != nil, count >= 0 else { return nil }
    var texts: [String] = []
    for _ in 0..<count {
      guard let length = number() else { return nil }
      if length < 0 { continue }
      guard position + length <= bytes.count else { return nil }
      texts.append(
        String(
          decoding: UnsafeRawBufferPointer(rebasing: bytes[position..<position + length]),
          as: UTF8.self))
      position += length
    }
    return texts
  }

  /// - Parameter type: Of an element, by its number in `pg_type`.
  private static func array<Element>(
    of type: Int32, _ values: [Element?],
    append element: (Element, inout [UInt8]) -> Void
  ) -> [UInt8] {
    var bytes: [UInt8] = []
    bytes.reserveCapacity(20 + values.count * 12)
    append(Int32(values.isEmpty ? 0 : 1), to: &bytes)
    let hasNull = bytes.count
    append(Int32(0), to: &bytes)
    append(type, to: &bytes)
    guard !values.isEmpty else { return bytes }
    append(Int32(clamping: values.count), to: &bytes)
    append(Int32(1), to: &bytes)
    for value in values {
      let start = bytes.count
      append(Int32(-1), to: &bytes)
      guard let value else {
        bytes[hasNull + 3] = 1
        continue
      }
      element(value, &bytes)
      let length = UInt32(clamping: bytes.count - start - 4).bigEndian
      bytes.withUnsafeMutableBytes {
        $0.storeBytes(of: length, toByteOffset: start, as: UInt32.self)
      }
    }
    return bytes
  }

  private static func append(_ value: some FixedWidthInteger, to bytes: inout [UInt8]) {
    withUnsafeBytes(of: value.bigEndian) { bytes.append(contentsOf: $0) }
  }
}
