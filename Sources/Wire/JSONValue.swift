/// A JSON document as it was written: members keep their order and their spelling, numbers their
/// digits.
///
/// It exists beside Foundation's decoder because the protocol requires what that cannot do: names
/// in any letter case, single quotes and unquoted names, members written in a fixed order, and
/// errors that name the member (docs/protocol/rest.md, section 4.1).
package enum JSONValue: Hashable, Sendable {
  case null
  case bool(Bool)
  /// The digits, verbatim.
  case number(String)
  case string(String)
  case array([JSONValue])
  case object([Member])

  /// One member of an object.
  package struct Member: Hashable, Sendable {
    package let name: String
    package let value: JSONValue
    package init(_ name: String, _ value: JSONValue) {
      self.name = name
      self.value = value
    }
  }

  /// The value as text if it is a scalar: strings unchanged, numbers and booleans as written.
  package var scalarText: String? {
    switch self {
    case .string(let text), .number(let text): text
    case .bool(let flag): flag ? "true" : "false"
    case .null, .array, .object: nil
    }
  }

  /// The members of an object; `nil` for anything else.
  package var members: [Member]? {
    if case .object(let members) = self { members } else { nil }
  }

  /// The first member with exactly that name, also when it is `null`.
  package func member(_ name: String) -> JSONValue? {
    members?.first { $0.name == name }?.value
  }

  /// The member with that name, ignoring letter case; the last one when there are several. A member
  /// that is `null` counts as absent.
  package subscript(name: String) -> JSONValue? {
    guard case .object(let members) = self else { return nil }
    let folded = name.lowercased()
    guard let found = members.last(where: { $0.name.lowercased() == folded }) else { return nil }
    return found.value == .null ? nil : found.value
  }

  /// The contents of a string.
  package var text: String? { if case .string(let text) = self { text } else { nil } }

  /// A number that is written as a whole one, without fraction and exponent.
  package var whole: Int64? {
    if case .number(let digits) = self { Int64(digits) } else { nil }
  }

  /// A number in the range of `Double`.
  package var number: Double? {
    guard case .number(let digits) = self, let number = Double(digits), number.isFinite else {
      return nil
    }
    return number
  }

  /// Compact JSON.
  package var jsonText: String { String(decoding: jsonBytes, as: UTF8.self) }

  /// Compact JSON, UTF-8.
  package var jsonBytes: [UInt8] {
    var writer = JSONWriter()
    writer.value(self)
    return writer.bytes
  }
}

extension JSONValue {
  /// Parses one JSON document in UTF-8.
  ///
  /// - Parameters:
  ///   - dialect: The accepted syntax beyond RFC 8259; a lenient one also accepts a byte order
  ///     mark.
  ///   - depthLimit: Maximum nesting depth of arrays and objects, at most
  ///     ``JSONScanner/maximumDepth``.
  ///   - uniqueNames: Whether to refuse an object with a duplicate member, because parsers differ
  ///     in which of the two counts.
  /// - Throws: ``SyntaxFault``.
  package static func read(
    _ text: some Collection<UInt8>, dialect: JSONScanner.Dialect = .strict,
    depthLimit: Int = JSONScanner.maximumDepth, uniqueNames: Bool = false
  ) throws(SyntaxFault) -> JSONValue {
    let result = text.withBytes { bytes in
      Result { () throws(SyntaxFault) in
        try read(
          bytes: bytes, dialect: dialect, depthLimit: depthLimit, uniqueNames: uniqueNames)
      }
    }
    return try result.get()
  }

  private static func read(
    bytes: UnsafeBufferPointer<UInt8>, dialect: JSONScanner.Dialect, depthLimit: Int,
    uniqueNames: Bool
  ) throws(SyntaxFault) -> JSONValue {
    var reader = JSONReader(
      scanner: JSONScanner(document: bytes, dialect: dialect, depthLimit: depthLimit),
      uniqueNames: uniqueNames)
    let value = try reader.value(try reader.scanner.next())
    try reader.scanner.finish()
    return value
  }

  /// Reads the rest of the value that a token begins.
  package init(_ token: JSONScanner.Token, of scanner: inout JSONScanner) throws(SyntaxFault) {
    var reader = JSONReader(scanner: scanner, uniqueNames: false)
    self = try reader.value(token)
    scanner = reader.scanner
  }
}

/// Builds values from tokens; the scanner's limit bounds the depth of recursion.
private struct JSONReader {
  var scanner: JSONScanner
  let uniqueNames: Bool

  mutating func value(_ token: JSONScanner.Token) throws(SyntaxFault) -> JSONValue {
    switch token {
    case .string(let text): return .string(try scanner.string(text))
    case .number(let range):
      return .number(String(decoding: scanner.bytes[range], as: UTF8.self))
    case .bool(let flag): return .bool(flag)
    case .null: return .null
    case .objectStart: return .object(try members())
    case .arrayStart:
      var items: [JSONValue] = []
      while true {
        let token = try scanner.next()
        if case .arrayEnd = token { return .array(items) }
        items.append(try value(token))
      }
    case .key, .objectEnd, .arrayEnd, .end: throw scanner.fault("a JSON value is expected")
    }
  }

  private mutating func members() throws(SyntaxFault) -> [JSONValue.Member] {
    var members: [JSONValue.Member] = []
    var names: Set<String> = []
    while let key = try scanner.nextMember() {
      // Of the outermost object only: in a document of a million small ones it would be memory for eight.
      if members.isEmpty, scanner.depth == 1 { members.reserveCapacity(8) }
      let name = try scanner.string(key)
      if uniqueNames, !names.insert(name).inserted {
        throw SyntaxFault("the member '\(name)' is there twice", at: key.range.lowerBound)
      }
      members.append(JSONValue.Member(name, try value(try scanner.next())))
    }
    return members
  }
}

/// For types whose `Codable` form is a document of the wire. Numbers keep their value, not their
/// digits.
extension JSONValue: Codable {
  private struct Name: CodingKey {
    let stringValue: String
    var intValue: Int? { nil }
    init(stringValue: String) { self.stringValue = stringValue }
    init?(intValue: Int) { nil }
  }

  package init(from decoder: any Decoder) throws {
    if let members = try? decoder.container(keyedBy: Name.self) {
      self = .object(
        try members.allKeys.map {
          Member($0.stringValue, try members.decode(JSONValue.self, forKey: $0))
        })
      return
    }
    if var items = try? decoder.unkeyedContainer() {
      var list: [JSONValue] = []
      while !items.isAtEnd { list.append(try items.decode(JSONValue.self)) }
      self = .array(list)
      return
    }
    let one = try decoder.singleValueContainer()
    if one.decodeNil() {
      self = .null
    } else if let flag = try? one.decode(Bool.self) {
      self = .bool(flag)
    } else if let text = try? one.decode(String.self) {
      self = .string(text)
    } else if let number = try? one.decode(Int64.self) {
      self = .number(String(number))
    } else {
      self = .number(String(try one.decode(Double.self)))
    }
  }

  package func encode(to encoder: any Encoder) throws {
    switch self {
    case .object(let list):
      var members = encoder.container(keyedBy: Name.self)
      for member in list {
        try members.encode(member.value, forKey: Name(stringValue: member.name))
      }
    case .array(let list):
      var items = encoder.unkeyedContainer()
      for item in list { try items.encode(item) }
    case .null, .bool, .number, .string:
      var one = encoder.singleValueContainer()
      switch self {
      case .bool(let flag): try one.encode(flag)
      case .string(let text): try one.encode(text)
      case .number(let digits):
        if let whole = Int64(digits) {
          try one.encode(whole)
        } else {
          try one.encode(Double(digits))
        }
      default: try one.encodeNil()
      }
    }
  }
}
