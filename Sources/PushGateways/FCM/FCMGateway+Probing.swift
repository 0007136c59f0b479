package import HubCore
import NotificationHubs

extension FCMGateway: ProbingGateway {
  /// Gets an access token, and has FCM check a message that it is told not to send.
  package func probe() async -> CredentialProbe {
    let body = PushBody(
      bytes: Array(#"{"validate_only":true,"message":{"data":{"probe":"1"}}}"#.utf8))
    let results = await deliver(PushBatch(to: "belfry-probe", body))
    return Self.reading.probe(results.first ?? PushResult(outcome: .unknownError))
  }

  private static let reading = ProbeReading(
    service: "Google",
    proof:
      "its token service knows the key, and FCM the project; the message was for no device and only "
      + "to be checked",
    advice: [
      "invalid_grant":
        "The key is deleted, or the account, or this machine's clock is wrong: make a new key in the "
        + "Firebase console, under project settings, service accounts.",
      "invalid_client": account,
      "unauthorized_client": account,
      "PERMISSION_DENIED":
        "Turn on the Firebase Cloud Messaging API (V1) for the project, and give the service account "
        + "the role Firebase Cloud Messaging API Admin.",
      "SENDER_ID_MISMATCH": "The service account belongs to another project than project_id.",
      "NOT_FOUND": "There is no such project: check project_id.",
      "UNAUTHENTICATED": account,
    ], otherAdvice: account)

  private static let account =
    "Make a new key for the service account in the Firebase console, under project settings, service "
    + "accounts."
}
