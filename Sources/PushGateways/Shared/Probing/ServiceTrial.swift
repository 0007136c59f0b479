import HubCore
import NotificationHubs

/// What a service with HTTP/1.1 is asked to try a credential.
enum ServiceTrial: Sendable {
  /// Its token service gives an access token, or does not.
  case token(ProbeReading)
  /// A push for a device that there is not: it has to look at the credential first.
  case push(handle: String, body: PushBody, ProbeReading)
  /// Nobody can be asked; why, for people.
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
