import COpenSSL

/// An error of a cryptographic operation. The text names the input and gives advice; it never
/// contains key material, passwords or plaintext.
package struct CryptographyError: Error, Equatable, CustomStringConvertible {
  /// The category of an error, for code that must decide; people read ``message``.
  package enum Kind: Sendable, Equatable {
    /// The input is malformed.
    case malformed
    /// A well-formed input of an unsupported kind (another curve, an encrypted key, a cipher that
    /// this system's OpenSSL lacks).
    case unsupported
    /// A PKCS#12 archive does not open with the given password.
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

  /// An OpenSSL call failed: moves the reasons from this thread's error queue into the text.
  static func engine(_ action: String) -> Self {
    Self(.engine, "OpenSSL could not \(action): \(OpenSSLErrors.drain())")
  }
}

/// This thread's OpenSSL error queue.
enum OpenSSLErrors {
  /// Empties the queue and returns its reasons, the first (deepest) first.
  ///
  /// Every failing call must be followed by a drain, even if the failure is expected: a leftover
  /// entry makes a later `SSL_get_error` on the same thread report a failure that did not happen.
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
