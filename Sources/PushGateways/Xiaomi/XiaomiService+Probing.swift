import HubCore

extension XiaomiService {
  /// A message to the app, for a registration id that no device has: Xiaomi's calls that send nothing
  /// ask about a message or a device, and take the same secret.
  var trial: ServiceTrial {
    .push(
      handle: "belfry-probe",
      body: PushBody(bytes: Array(#"{"pass_through":1,"payload":"probe"}"#.utf8)),
      ProbeReading(
        service: "Xiaomi",
        proof: "it took the secret, and knows no device with the registration id that was tried",
        advice: [
          "10037": "Check this machine's clock.",
          "22022": "The secret is not of this package.",
        ],
        otherAdvice:
          "The AppSecret must be that of the app (not its AppKey or AppId), of the region that "
          + "--endpoint names: the app's page of Xiaomi's console."))
  }
}
