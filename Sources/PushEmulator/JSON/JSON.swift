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
  /// Bytes that are already one JSON value, embedded as they are.
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
  /// The compact form.
  var bytes: [UInt8] {
    var out: [UInt8] = []
    write(to: &out)
    return out
  }

  func write(to out: inout [UInt8]) {
    switch self {
    case .null: out += "null".utf8
    case .bool(let flag): out += (flag ? "true" : "false").utf8
    case .int(let number): out += String(number).utf8
    case .double(let number): out += (number.isFinite ? String(number) : "null").utf8
    case .string(let text): Self.write(text, to: &out)
    case .raw(let bytes): out += bytes
    case .array(let items):
      out.append(UInt8(ascii: "["))
      for (index, item) in items.enumerated() {
        if index > 0 { out.append(UInt8(ascii: ",")) }
        item.write(to: &out)
      }
      out.append(UInt8(ascii: "]"))
    case .object(let members):
      out.append(UInt8(ascii: "{"))
      for (index, member) in members.enumerated() {
        if index > 0 { out.append(UInt8(ascii: ",")) }
        Self.write(member.name, to: &out)
        out.append(UInt8(ascii: ":"))
        member.value.write(to: &out)
      }
      out.append(UInt8(ascii: "}"))
    }
  }

  private static func write(_ text: String, to out: inout [UInt8]) {
    let hex = Array("0123456789abcdef".utf8)
    out.append(UInt8(ascii: "\""))
    for byte in text.utf8 {
      switch byte {
      case UInt8(ascii: "\""), UInt8(ascii: "\\"): out += [UInt8(ascii: "\\"), byte]
      case UInt8(ascii: "\n"): out += "\\n".utf8
      case UInt8(ascii: "\r"): out += "\\r".utf8
      case UInt8(ascii: "\t"): out += "\\t".utf8
      case 0..<0x20, 0x7F:
        out += "\\u00".utf8
        out += [hex[Int(byte >> 4)], hex[Int(byte & 15)]]
      default: out.append(byte)
      }
    }
    out.append(UInt8(ascii: "\""))
  }
}
