// The declarations that the device SDK uses of AppKit, as in the macOS SDK. Nothing here does anything; see
// UIKit.swift.

@_exported import Foundation

@MainActor open class NSApplication: NSObject {
  open class var shared: NSApplication { NSApplication() }
  open func registerForRemoteNotifications() {}
}
