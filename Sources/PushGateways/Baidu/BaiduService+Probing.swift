import HubCore
import NotificationHubs

extension BaiduService {
  /// A push for a channel that no device has. Baidu has no call of an app that merely looks at its
  /// keys in both forms of its interface; this one is signed like any, and reaches nobody.
  var trial: ServiceTrial {
    .push(
      handle: PushChannel.baidu(userID: "0", channelID: "0").handle,
      body: PushBody(
        bytes: Array(#"{"probe":"1"}"#.utf8), headers: ["x-baidu-message-type": "0"]),
      ProbeReading(
        service: "Baidu",
        proof: "it took the signature, and knows no device with the channel that was tried",
        advice: [
          "30603": "API key and secret key must be of the same app: its page of Baidu's console.",
          "30606": "Check this machine's clock: Baidu takes requests of the last ten minutes.",
          "30612": "The app is not on Baidu's list of those that may push: ask Baidu.",
          "30613": "Initialise the app in Baidu's console first.",
          "30616": "The app may not push to single devices: ask Baidu for the permission.",
          "30618": "Baidu has not approved the app yet.",
        ], otherAdvice: "Check API key and secret key on the app's page of Baidu's console."))
  }
}
