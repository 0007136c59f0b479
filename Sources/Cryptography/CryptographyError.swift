import COpenSSL

/// Why something cryptographic could not be done. The text names what was read and what to do; it
/// never holds key material, passwords or plaintext.
package struct CryptographyError: Error, Equatable, CustomStringConvertible {
  /// What went wrong, for code that has to decide; people read ``message``.
  package enum Kind: Sendable, Equatable {
    /// The input does not have the form it should have.
    case malformed
    /// A well-formed input of a kind we do not take (another curve, an encrypted key, a cipher that
    /// this system's OpenSSL lacks).
    case unsupported
    /// A PKCS#12 archive does not open with the password given.
    case wrongPassword
    /// Sealed data does not open: another master key, another context, or changed bytes.
    case sealBroken
    /// A key file is missing, unreadable, or cannot be written.
    case file
    /// OpenSSL failed at something that should not fail.
    case engine
  }

  package let kind: Kind
  package let message: String

  package init(_ kind: Kind, _ message: String) {
    self.kind = kind
    self.message = message
  }

  package var description: String { message }

  /// An OpenSSL call failed: takes the reasons out of this thread's error queue into the text.
  static func engine(_ action: String) -> Self {
    Self(.engine, "OpenSSL could not \(action): \(OpenSSLErrors.drain())")
  }
}

/// This thread's OpenSSL error queue.
enum OpenSSLErrors {
  /// Empties the queue and returns its reasons, the first (deepest) first.
  ///
  /// Every failing call must end in a drain, also where the failure is expected: a leftover entry
  /// makes a later `SSL_get_error` on the same thread report a failure that never was.
  @discardableResult
  static func drain() -> String {
    var reasons: [String] = []
    while true {
      let code = ERR_get_error()
      guard code != 0 else { break }
      guard reasons.count < 4 else { continue }
      let reason = ERR_reason_error_string(code).map { String(cString: $0) } ?? "error \(code)"
      if !reasons.contains(reason) { reasons.append(reason) }
    }
    return reasons.isEmpty ? "no reason given" : reasons.joined(separator: "; ")
  }
}
