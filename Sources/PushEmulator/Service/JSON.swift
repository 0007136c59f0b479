import Wire

/// A JSON value whose object members keep their order, so that the control API answers the same
/// bytes for the same state.
enum JSON: Sendable, Equatable {
  case null
  case bool(Bool)
  case int(Int64)
  case double(Double)
  case string(String)
  case array([JSON])
  case object([Member])
  /// Bytes that already are one JSON value, embedded unchanged.
  case raw([UInt8])

  struct Member: Sendable, Equatable {
    let name: String
    let value: JSON
  }

  init(_ number: some BinaryInteger) { self = .int(Int64(clamping: number)) }

  /// The string, or `null` for none.
  init(_ text: String?) { self = text.map(JSON.string) ?? .null }

  /// The number, or `null` for none.
  init(optional number: Int64?) { self = number.map(JSON.int) ?? .null }

  /// An object of strings.
  init(_ pairs: some Sequence<(name: String, value: String)>) {
    self = .object(pairs.map { Member(name: $0.name, value: .string($0.value)) })
  }

  /// The members of one object, then those of the other.
  static func + (left: JSON, right: JSON) -> JSON {
    .object((left.members ?? []) + (right.members ?? []))
  }

  /// The members of an object; `nil` for anything else.
  var members: [Member]? {
    if case .object(let members) = self { members } else { nil }
  }

  /// The first member of that name in an object.
  subscript(name: String) -> JSON? { members?.first { $0.name == name }?.value }

  var text: String? { if case .string(let text) = self { text } else { nil } }
}

extension JSON: ExpressibleByStringLiteral, ExpressibleByBooleanLiteral,
  ExpressibleByIntegerLiteral, ExpressibleByArrayLiteral, ExpressibleByDictionaryLiteral,
  ExpressibleByNilLiteral
{
  init(stringLiteral value: String) { self = .string(value) }
  init(booleanLiteral value: Bool) { self = .bool(value) }
  init(integerLiteral value: Int64) { self = .int(value) }
  init(arrayLiteral elements: JSON...) { self = .array(elements) }
  init(dictionaryLiteral elements: (String, JSON)...) {
    self = .object(elements.map { Member(name: $0, value: $1) })
  }
  init(nilLiteral: ()) { self = .null }
}

extension JSON {
  /// Parses one JSON value.
  ///
  /// - Throws: An error also for an object with a duplicate member, because parsers differ in which
  ///   of the two counts, and for a number beyond the range of `Double`.
  static func parse(_ bytes: [UInt8]) throws(SyntaxFault) -> JSON {
    try JSON(try JSONValue.read(bytes, uniqueNames: true))
  }

  private init(_ value: JSONValue) throws(SyntaxFault) {
    switch value {
    case .null: self = .null
    case .bool(let flag): self = .bool(flag)
    case .string(let text): self = .string(text)
    case .number(let digits):
      if let whole = Int64(digits) {
        self = .int(whole)
      } else if let number = Double(digits), number.isFinite {
        self = .double(number)
      } else {
        throw SyntaxFault("the number is out of range", at: 0)
      }
    case .array(let values):
      var items: [JSON] = []
      for value in values { items.append(try JSON(value)) }
      self = .array(items)
    case .object(let values):
      var members: [Member] = []
      for item in values { members.append(.init(name: item.name, value: try JSON(item.value))) }
      self = .object(members)
    }
  }

  /// Whether the bytes are exactly one JSON object; called for every payload.
  static func isObject(_ bytes: [UInt8]) -> Bool {
    bytes.withUnsafeBufferPointer { buffer in
      var scanner = JSONScanner(buffer)
      guard scanner.peek() == UInt8(ascii: "{") else { return false }
      do throws(SyntaxFault) {
        try scanner.skipValue()
        try scanner.finish()
      } catch {
        return false
      }
      return !buffer.contains { $0 >= 0x80 } || String(validating: buffer, as: UTF8.self) != nil
    }
  }

  /// The compact form.
  var bytes: [UInt8] {
    var writer = JSONWriter()
    write(to: &writer)
    return writer.bytes
  }

  private func write(to writer: inout JSONWriter) {
    switch self {
    case .null: writer.raw("null")
    case .bool(let flag): writer.bool(flag)
    case .int(let number): writer.raw(String(number))
    case .double(let number): writer.raw(number.isFinite ? String(number) : "null")
    case .string(let text): writer.string(text)
    case .raw(let bytes): writer.raw(String(decoding: bytes, as: UTF8.self))
    case .array(let items):
      writer.beginArray()
      for item in items { item.write(to: &writer) }
      writer.endArray()
    case .object(let members):
      writer.beginObject()
      for member in members {
        writer.name(member.name)
        member.value.write(to: &writer)
      }
      writer.endObject()
    }
  }
}
