extension ADMService {
  /// Its token service looks at all that the credential holds.
  var trial: ServiceTrial {
    .token(
      ProbeReading(
        service: "Amazon", proof: "it gave an access token", advice: [:],
        otherAdvice:
          "Client id and secret must be of one security profile with Device Messaging turned on: the "
          + "app's page of Amazon's developer console."))
  }
}
