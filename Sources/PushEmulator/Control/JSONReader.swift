import Wire

/// Reads the members of one JSON object strictly: an unknown member, a wrong type or a value out of
/// range is refused with an error that names the member by its path.
struct JSONReader {
  private let values: [String: JSONValue]
  private let path: String

  /// - Parameters:
  ///   - known: Every member that is allowed.
  ///   - path: The path of the object in the request, for errors; empty for the request itself.
  init(_ value: JSONValue, known: [String], path: String = "") throws(ControlError) {
    guard let members = value.members else {
      throw .wrongType(path.isEmpty ? "the request body" : "'\(path)'", expected: "an object")
    }
    self.path = path
    var values: [String: JSONValue] = [:]
    for member in members {
      guard known.contains(member.name) else {
        throw .unknownMember(
          path.isEmpty ? member.name : "\(path).\(member.name)", known: known)
      }
      values[member.name] = member.value
    }
    self.values = values
  }

  /// The member's full name for messages.
  func name(_ member: String) -> String { path.isEmpty ? member : "\(path).\(member)" }

  /// Whether the member is present, `null` included.
  func has(_ member: String) -> Bool { values[member] != nil }

  /// The member's value; `nil` when absent or `null`.
  func value(_ member: String) -> JSONValue? {
    if let value = values[member], value != .null { value } else { nil }
  }

  func string(_ member: String) throws(ControlError) -> String? {
    guard let value = value(member) else { return nil }
    guard case .string(let text) = value else {
      throw .wrongType("'\(name(member))'", expected: "a string")
    }
    return text
  }

  func required(_ member: String) throws(ControlError) -> String {
    guard let text = try string(member) else { throw .missing(name(member)) }
    guard !text.isEmpty else { throw invalid(member, "must not be empty") }
    return text
  }

  func bool(_ member: String) throws(ControlError) -> Bool? {
    guard let value = value(member) else { return nil }
    guard case .bool(let flag) = value else {
      throw .wrongType("'\(name(member))'", expected: "true or false")
    }
    return flag
  }

  func int(_ member: String, in range: ClosedRange<Int64>) throws(ControlError) -> Int64? {
    guard let value = value(member) else { return nil }
    guard let number = value.whole ?? value.number.flatMap(Int64.init(exactly:)) else {
      throw .wrongType(
        "'\(name(member))'", expected: value.number == nil ? "a number" : "a whole number")
    }
    guard range.contains(number) else {
      throw invalid(member, "must be \(range.lowerBound) to \(range.upperBound)")
    }
    return number
  }

  func number(_ member: String, in range: ClosedRange<Double>) throws(ControlError) -> Double? {
    guard let value = value(member) else { return nil }
    guard let number = value.number else {
      throw .wrongType("'\(name(member))'", expected: "a number")
    }
    guard range.contains(number) else {
      throw invalid(member, "must be \(range.lowerBound) to \(range.upperBound)")
    }
    return number
  }

  func array(_ member: String) throws(ControlError) -> [JSONValue]? {
    guard let value = value(member) else { return nil }
    guard case .array(let items) = value else {
      throw .wrongType("'\(name(member))'", expected: "an array")
    }
    return items
  }

  func strings(_ member: String) throws(ControlError) -> [String]? {
    guard let items = try array(member) else { return nil }
    var texts: [String] = []
    for (index, item) in items.enumerated() {
      guard case .string(let text) = item else {
        throw .wrongType("'\(name(member))[\(index)]'", expected: "a string")
      }
      texts.append(text)
    }
    return texts
  }

  /// A reader for the object at `member`; `nil` when absent or `null`.
  func object(_ member: String, known: [String]) throws(ControlError) -> JSONReader? {
    guard let value = value(member) else { return nil }
    return try JSONReader(value, known: known, path: name(member))
  }

  /// One of a closed set of words.
  func word<Word: RawRepresentable<String> & CaseIterable>(
    _ member: String, _ type: Word.Type
  ) throws(ControlError) -> Word? {
    guard let text = try string(member) else { return nil }
    guard let word = Word(rawValue: text) else {
      let words = Word.allCases.map(\.rawValue).joined(separator: ", ")
      throw invalid(member, "must be one of: \(words)")
    }
    return word
  }

  func invalid(_ member: String, _ rule: String) -> ControlError {
    .invalidValue(name(member), rule)
  }
}
