import HubCore
import NotificationHubs

/// How the answer to a trial is read: what a service's words say about the credential.
struct ProbeReading: Sendable {
  /// As people call it: `Apple`.
  let service: String
  /// What the trial was, as the end of "accepts the credential: …".
  let proof: String
  /// What stays open when all is well.
  var open = ""
  /// What to do about the service's words. A word that stands here is a refusal.
  let advice: [String: String]
  /// What to do about a refusal in other words.
  let otherAdvice: String

  func probe(_ result: PushResult) -> CredentialProbe {
    let reason = result.reason ?? ""
    switch result.outcome {
    case .success, .badChannel, .expiredChannel, .wrongChannel, .channelDisconnected:
      // Without an answer it was this side that found the handle bad.
      guard result.status != 0 else { break }
      let end = open.isEmpty ? "" : " " + open
      return CredentialProbe(.accepted, "\(service) accepts the credential: \(proof).\(end)")
    case .pnsUnreachable, .tokenProviderUnreachable:
      return CredentialProbe(
        .unreachable, reason: reason,
        """
        \(service) cannot be reached (\(reason)), so the credential is not proven. Check the network \
        and the address; an authority that is not the system's is named with --trust.
        """)
    default: break
    }
    // `30603: what the service says`
    let word = String(reason.prefix { $0 != ":" })
    if let advice = advice[word] { return refused(reason, advice) }
    if result.outcome == .invalidCredentials { return refused(reason, otherAdvice) }
    return CredentialProbe(
      .undecided, reason: reason,
      """
      \(service) answered \(reason.isEmpty ? "status \(result.status)" : reason), which says nothing \
      about the credential. Try again later.
      """)
  }

  private func refused(_ reason: String, _ advice: String) -> CredentialProbe {
    CredentialProbe(
      .refused, reason: reason, "\(service) refuses the credential (\(reason)). \(advice)")
  }
}
