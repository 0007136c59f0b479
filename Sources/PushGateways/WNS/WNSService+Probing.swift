extension WNSService {
  /// A channel is an address that one device gave, so its token service is all that can be asked.
  var trial: ServiceTrial {
    let advice =
      switch kind {
      case .live:
        "The Package SID and the secret must be of the same app: Partner Center, the app's product "
          + "identity, then Live Services site (Application Secrets)."
      case .entra:
        "Tenant id, client id and secret must be of one app registration, and the secret not expired: "
          + "entra.microsoft.com, App registrations, Certificates & secrets (its value, not its id)."
      }
    return .token(
      ProbeReading(
        service: "Microsoft", proof: "it gave an access token",
        open: "Whether the app's channels take it shows with the first push to a device.",
        advice: [:], otherAdvice: advice))
  }
}
