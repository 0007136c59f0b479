import Wire

/// An error of the control API: `{"error":{"code":"...","message":"..."}}`
/// (docs/protocol/emulator.md, section 2).
struct ControlError: Error, Equatable {
  /// 400, 404, 405, 409, 413, 500 or 503.
  let status: Int
  /// A code for programs.
  let code: String
  /// A description of the fault, its location and the expected value; names the member.
  let message: String

  static func invalidJSON(_ fault: SyntaxFault) -> Self {
    .init(
      status: 400, code: "invalid_json",
      message: "the request body is not JSON at byte \(fault.position): \(fault.message)")
  }

  static func unknownMember(_ name: String, known: [String]) -> Self {
    .init(
      status: 400, code: "unknown_member",
      message: "unknown member '\(name)'; known: \(known.joined(separator: ", "))")
  }

  /// - Parameter what: The member in quotes, or "the request body".
  static func wrongType(_ what: String, expected: String) -> Self {
    .init(status: 400, code: "wrong_type", message: "\(what) must be \(expected)")
  }

  static func missing(_ name: String) -> Self {
    .init(status: 400, code: "missing_member", message: "member '\(name)' is required")
  }

  static func invalidValue(_ name: String, _ rule: String) -> Self {
    .init(status: 400, code: "invalid_value", message: "'\(name)' \(rule)")
  }

  /// - Parameter what: For example "device 'dev-7'".
  static func notFound(_ what: String) -> Self {
    .init(status: 404, code: "not_found", message: "no \(what)")
  }

  static func conflict(_ message: String) -> Self {
    .init(status: 409, code: "conflict", message: message)
  }

  /// The cryptographic library failed.
  static func engine(_ error: some Error) -> Self {
    .init(status: 500, code: "engine", message: "\(error)")
  }

  var body: JSONValue {
    ["error": ["code": .string(code), "message": .string(message)]]
  }
}
