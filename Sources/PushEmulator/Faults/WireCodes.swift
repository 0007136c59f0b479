/// HTTP/2 error codes (RFC 9113, section 7) by name, as the control API takes them.
enum HTTP2ErrorCode {
  static let noError: UInt32 = 0
  static let internalError: UInt32 = 2
  static let refusedStream: UInt32 = 7

  private static let names = [
    "NO_ERROR", "PROTOCOL_ERROR", "INTERNAL_ERROR", "FLOW_CONTROL_ERROR", "SETTINGS_TIMEOUT",
    "STREAM_CLOSED", "FRAME_SIZE_ERROR", "REFUSED_STREAM", "CANCEL", "COMPRESSION_ERROR",
    "CONNECT_ERROR", "ENHANCE_YOUR_CALM", "INADEQUATE_SECURITY", "HTTP_1_1_REQUIRED",
  ]

  /// A code by its name or number; `nil` when the member is absent.
  static func read(_ reader: JSONReader, _ member: String) throws(ControlError) -> UInt32? {
    guard case .string(let name)? = reader.value(member) else {
      return try reader.int(member, in: 0...Int64(UInt32.max)).map(UInt32.init)
    }
    guard let code = names.firstIndex(of: name.uppercased()) else {
      throw reader.invalid(
        member, "must be a number or one of: \(names.joined(separator: ", "))")
    }
    return UInt32(code)
  }
}

/// TLS alerts (RFC 8446, section 6) by name, as the control API takes them.
enum TLSAlert {
  private static let codes: [(name: String, code: UInt8)] = [
    ("unexpected_message", 10), ("handshake_failure", 40), ("bad_certificate", 42),
    ("unsupported_certificate", 43), ("certificate_revoked", 44), ("certificate_expired", 45),
    ("certificate_unknown", 46), ("illegal_parameter", 47), ("unknown_ca", 48),
    ("access_denied", 49), ("protocol_version", 70), ("insufficient_security", 71),
    ("internal_error", 80), ("unrecognized_name", 112), ("certificate_required", 116),
    ("no_application_protocol", 120),
  ]

  static func read(_ reader: JSONReader, _ member: String) throws(ControlError) -> UInt8 {
    guard let value = reader.value(member) else { throw .missing(reader.name(member)) }
    if case .string(let name) = value {
      guard let alert = codes.first(where: { $0.name == name }) else {
        throw reader.invalid(
          member, "must be a number or one of: \(codes.map(\.name).joined(separator: ", "))")
      }
      return alert.code
    }
    return UInt8(try reader.int(member, in: 0...255) ?? 0)
  }
}

/// What may stand in a header field of an answer (RFC 9110, section 5).
enum HTTPFieldRules {
  static func isName(_ name: String) -> Bool {
    !name.isEmpty
      && name.utf8.allSatisfy { byte in
        switch byte {
        case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
          UInt8(ascii: "0")...UInt8(ascii: "9"):
          true
        default: "!#$%&'*+-.^_`|~".utf8.contains(byte)
        }
      }
  }

  static func isValue(_ value: String) -> Bool {
    value.utf8.allSatisfy { $0 >= 0x20 && $0 != 0x7F || $0 == 0x09 }
  }
}
