package import HubCore
package import NotificationHubs

/// A gateway that can try its credential without sending to a real device.
package protocol ProbingGateway: PushGateway {
  func probe() async -> CredentialProbe
}

extension PushGatewayDirectory: CredentialProber {
  /// Probes with a gateway made for the purpose; one in use is not affected.
  package func probe(
    _ credential: PushCredential
  ) async throws(CredentialError) -> CredentialProbe {
    guard let gateway = try makeGateway(for: credential) as? any ProbingGateway else {
      return CredentialProbe(
        .untried, "This build cannot try a credential for \(credential.platform.rawValue).")
    }
    return await gateway.probe()
  }
}

extension PushBatch {
  /// A push for one handle.
  init(to handle: String, _ body: PushBody) {
    let bytes = Array(handle.utf8)
    self.init(
      requests: [
        PushRequest(
          id: PushID(high: 0x6265_6c66_7279, low: 0x70_726f_6265), handle: 0..<bytes.count, body: 0,
          confirmedAt: 0)
      ], bodies: [body], handles: bytes)
  }
}

/// The request that tries a credential of a service with HTTP/1.1.
enum ServiceTrial: Sendable {
  /// Requests an access token from its token service.
  case token(ProbeReading)
  /// Sends a push to a device that does not exist: the service must check the credential first.
  case push(handle: String, body: PushBody, ProbeReading)
  /// No request can try it; with the reason, for people.
  case none(String)
}

extension HTTPPushGateway: ProbingGateway {
  func probe() async -> CredentialProbe {
    switch service.trial {
    case .none(let text): return CredentialProbe(.untried, text)
    case .push(let handle, let body, let reading):
      let results = await deliver(PushBatch(to: handle, body))
      return reading.probe(results.first ?? PushResult(outcome: .unknownError))
    case .token(let reading):
      do throws(AccessTokenFailure) {
        _ = try await tokens?.current()
        return reading.probe(.success)
      } catch {
        return reading.probe(error.result)
      }
    }
  }
}

/// Interpretation of the reply to a trial: the meaning of a service's words for the credential.
struct ProbeReading: Sendable {
  /// The service's name for people: `Apple`.
  let service: String
  /// A description of the trial, as the end of "accepts the credential: …".
  let proof: String
  /// A description of what the trial cannot show, when it succeeds.
  var open = ""
  /// Advice by the service's word. A word listed here is a refusal.
  let advice: [String: String]
  /// Advice for a refusal with any other word.
  let otherAdvice: String

  func probe(_ result: PushResult) -> CredentialProbe {
    let reason = result.reason ?? ""
    switch result.outcome {
    case .success, .badChannel, .expiredChannel, .wrongChannel, .channelDisconnected:
      // Without a reply it was this side that found the handle bad.
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
    // The form is `30603: message of the service`.
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
