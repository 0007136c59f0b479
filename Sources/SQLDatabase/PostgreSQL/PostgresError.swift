import CPostgres

extension SQLError {
  /// The error of a result that is none.
  /// - SeeAlso: <https://www.postgresql.org/docs/current/errcodes-appendix.html>
  init(postgres result: OpaquePointer?, connection: OpaquePointer?) {
    let state = result.flatMap { belfry_pq_sqlstate($0) }.map { String(cString: $0) } ?? ""
    // Only the first line: the detail below it holds values.
    let message =
      result.flatMap { belfry_pq_message($0) }.map { String(cString: $0) }
      ?? Self.text(PQerrorMessage(connection))
    self.init(
      kind: Self.kind(sqlState: state), code: Int32(state, radix: 36) ?? 0, message: message)
  }

  /// The error of a connection that could not be made, or was lost.
  init(postgresConnection connection: OpaquePointer?) {
    self.init(kind: .cannotOpen, code: 0, message: Self.text(PQerrorMessage(connection)))
  }

  private static func text(_ message: UnsafePointer<CChar>?) -> String {
    guard let message else { return "out of memory" }
    let lines = String(cString: message).split(separator: "\n")
    return lines.first.map(String.init) ?? "the connection is lost"
  }

  private static func kind(sqlState state: String) -> Kind {
    switch state {
    case "53100", "53200", "54000": .full
    case "55P03", "40001", "40P01", "55006": .locked
    case "XX001", "XX002": .corrupt
    case "25006": .readOnly
    case "3D000", "28000", "28P01", "53300", "57P03": .cannotOpen
    case "58030": .inputOutput
    default:
      if state.hasPrefix("23") {
        .constraint
      } else if state.isEmpty || state.hasPrefix("08") || state.hasPrefix("57P") {
        // No state at all: the server has gone away in the middle.
        .cannotOpen
      } else {
        .other
      }
    }
  }
}
