/// What a push service said about a credential that was tried with it.
package struct CredentialProbe: Hashable, Sendable {
  package enum Verdict: String, Sendable {
    /// The service knows the credential.
    case accepted
    /// It does not, or will not serve it.
    case refused
    /// No connection, or no answer.
    case unreachable
    /// It answered something that says nothing about the credential.
    case undecided
    /// There is nobody to ask without a device's address.
    case untried
  }

  package let verdict: Verdict
  /// The service's own word (`InvalidProviderToken`), or the transport's; `nil` on success.
  package let reason: String?
  /// For people: what was tried, what that says, what to do. Holds no secret.
  package let text: String

  package init(_ verdict: Verdict, reason: String? = nil, _ text: String) {
    self.verdict = verdict
    self.reason = reason
    self.text = text
  }
}

/// Tries a credential at its push service in a way that no device notices.
package protocol CredentialProber: Sendable {
  /// - Throws: ``CredentialError`` when the credential cannot work, whatever the service says.
  func probe(_ credential: PushCredential) async throws(CredentialError) -> CredentialProbe
}
