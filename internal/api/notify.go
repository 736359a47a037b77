package api

import "mcpproxy/internal/ops/notify"

// TestNotifications sends a test notification.
var TestNotifications = declareOperation("POST /notifications/test", "testNotifications", Operate, "Send a test notification to the desktop and every webhook", (*notify.Notifier).SendTest).withTimeout(restartTimeout)
