import Foundation
import NotificationHubs
import Testing

@testable import HubCore

@Suite("What a credential is")
struct CredentialKindTests {
  @Test(
    "a certificate, or what else proves who the hub is",
    arguments: [
      (PushPlatform.apns, ["Token", "KeyId", "AppName", "AppId"], "token"),
      (.apns, ["ApnsCertificate", "CertificateKey"], "certificate"),
      (.wns, ["PackageSid", "SecretKey"], "secret"),
      (.wns, ["WnsCertificate", "CertificateKey"], "certificate"),
      (.wns, ["TenantId", "ClientId", "ClientSecret"], "Entra secret"),
      (.mpns, ["MpnsCertificate", "CertificateKey"], "certificate"),
      (.fcmv1, ["PrivateKey", "ProjectId", "ClientEmail"], "service account"),
      (.browser, ["Subject", "VapidPublicKey", "VapidPrivateKey"], "VAPID pair"),
      (.adm, ["ClientId", "ClientSecret"], "secret"),
    ])
  func kind(platform: PushPlatform, properties: [String], kind: String) {
    let values = Dictionary(uniqueKeysWithValues: properties.map { ($0, "value") })
    #expect(
      PushCredential(platform: platform, properties: values, modifiedAt: .distantPast).kind == kind)
  }
}
